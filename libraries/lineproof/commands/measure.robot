*** Settings ***
Documentation       How much a router carries, without any threshold: what ``lineproof measure`` runs.
Resource            lineproof/characterisation.resource
Suite Setup         Open Testbed For    ${PLATFORM}    software=${SOFTWARE}    goal=${GOAL}
Suite Teardown      Close Testbed


*** Variables ***
${PLATFORM}      ${EMPTY}
${SOFTWARE}      ${NONE}
${FRAMES}        64b imix 1518b
${FLOWS}         1-flow 10k-flows
${DIRECTIONS}    unidirectional bidirectional
${MORE}          ${EMPTY}
${DEADLINE}      ${NONE}


*** Test Cases ***
Throughput Of Every Traffic
    [Documentation]    NDR: no frame lost; PDR: half a per cent at most. Bounds within two per cent of each other.
    VAR    ${traffic}    ${{' '.join('|'.join(words.split()) for words in [$FRAMES, $FLOWS, $DIRECTIONS])}}
    Search Throughput Of    ${MORE}    ${traffic}    relative_width=0.02    deadline=${DEADLINE}
