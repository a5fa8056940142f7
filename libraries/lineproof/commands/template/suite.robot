*** Settings ***
Documentation       The forwarding SLA of $name. Each test case is a sentence of it.
Resource            lineproof/acceptance.resource
Suite Setup         Open Testbed For    $name
Suite Teardown      Close Testbed
Test Tags           $name


*** Test Cases ***
Twenty Thousand Packets Come Through
    [Documentation]    A load that every generator can send: cables, set-up and evidence are right.
    [Tags]    64b    1-flow    unidirectional
    64b 1-flow unidirectional ≥ 20 kpps

Internet Mix Fills The Line
    [Documentation]    Throughput: this load is carried with no more loss than the goal allows.
    [Tags]    imix    unidirectional
    imix unidirectional ≥ 95% line rate

One Flow Forwards A Million Packets
    [Documentation]    Forwarding rate at maximum offered load. One flow uses one queue and one core.
    [Tags]    64b    1-flow    unidirectional
    64b 1-flow unidirectional forwards ≥ 1 Mpps

Both Directions Together
    [Documentation]    A rate of several directions says each way (the worse one) or in total (the sum).
    [Tags]    imix    bidirectional
    imix bidirectional ≥ 50% line rate each way
