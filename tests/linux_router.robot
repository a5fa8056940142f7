*** Settings ***
Documentation       A Linux kernel router: real frames through a real kernel, between network namespaces of one machine.
...                 Run it as root: ``robot -v TESTBED:netns tests/linux_router.robot``.
...                 The rates are modest on purpose: two cores share generator and router, often on a virtual machine.
...                 What is shown is that the chain counts right and that the kernel keeps its duties, not its speed.
Resource            ../resources/acceptance.resource
Library             linerate.robot.forwarded_frames.ForwardedFrames
Suite Setup         Open Testbed For    linux_router    software=linux    testbed=${TESTBED}    goal=${GOAL}
Suite Teardown      Close Testbed
Test Tags           linux    kernel


*** Variables ***
${TESTBED}      netns
# Short trials: what is shown here does not get truer by repetition.
${GOAL}         quick
# What generator and router sustain together on two cores of a small virtual machine, without loss.
${MODEST}       20 kpps


*** Test Cases ***
Small Frames Pass Without Loss
    [Documentation]    RFC 1812 owes no rate; an idle kernel loses nothing at a few per mille of line rate.
    [Tags]    64b    unidirectional
    64b unidirectional ≥ ${MODEST}

Large Frames Pass Without Loss
    [Documentation]    The largest untagged frames: 250 Mbit/s, and as many frames as above.
    [Tags]    1514b    unidirectional
    1514b unidirectional ≥ ${MODEST}

Internet Mix Passes Both Ways Without Loss
    [Documentation]    Three sizes at once, and each interface receives while it sends.
    [Tags]    imix    bidirectional
    imix bidirectional ≥ 10 kpps each way

One Flow Passes Without Loss
    [Documentation]    Every frame has the same addresses; one flow goes one way unless said.
    [Tags]    64b    1-flow    unidirectional
    1-flow 64b ≥ ${MODEST}

Nothing Is Lost At A Low Rate
    [Documentation]    Loss at a load named: none of 5000 frames a second.
    [Tags]    64b    unidirectional    loss
    64b unidirectional loses ≤ 0% at 5 kpps

Longest Frames Pass Without Loss
    [Documentation]    Jumbo frames, as long as the profiles have them: 370 Mbit/s each way.
    [Tags]    9216b    jumbo    bidirectional
    9216b bidirectional ≥ 5 kpps each way

IPv6 Passes Both Ways Without Loss
    [Documentation]    The same flows with addresses of RFC 5180; nothing of the kernel's neighbour discovery mixes in.
    [Tags]    78b    ipv6    bidirectional
    78b ipv6 bidirectional ≥ 10 kpps each way

Tagged Frames Pass Without Loss
    [Documentation]    VLAN 100 on both sides; skipped where the kernel has no module for it.
    [Tags]    64b    vlan    unidirectional
    [Setup]    Skip Unless Router Forwards    64b vlan
    64b vlan unidirectional ≥ ${MODEST}

Twice Tagged Frames Pass Without Loss
    [Documentation]    IEEE 802.1ad, VLAN 100 within VLAN 200; skipped where the kernel has no module for it.
    [Tags]    64b    qinq    unidirectional
    [Setup]    Skip Unless Router Forwards    64b qinq
    64b qinq unidirectional ≥ ${MODEST}

Labelled Frames Pass Without Loss
    [Documentation]    MPLS, each direction with a label of its own; skipped where the kernel has no module for it.
    [Tags]    64b    mpls    bidirectional
    [Setup]    Skip Unless Router Forwards    64b mpls
    64b mpls bidirectional ≥ 10 kpps each way

Each Frame Is Forwarded By The Book
    [Documentation]    RFC 1812 5.3.1: time to live one less, checksum right; link addresses are the next hop's.
    [Tags]    64b    forwarding
    ${frames} =    Capture Forwarded Frames    ${BENCH}    64b    1000    bidirectional=${True}
    Time To Live Should Be    ${frames}    ${63}
    ${first} =    Link Address Of Router Interface    0
    ${second} =    Link Address Of Router Interface    1
    Link Addresses Should Be Rewritten    ${BENCH}    ${frames}    ${first}    ${second}

A Rate Beyond The Router Fails
    [Documentation]    The router's second interface is narrowed to 10 Mbit/s (about 20 kpps of 64-byte frames), and
    ...    five times as much is asked of it: it loses frames, and the verdict says so.
    [Tags]    64b    negative
    [Setup]    Narrow The Router To    10mbit
    ${error} =    Run Keyword And Expect Error    FAIL:*    64b unidirectional ≥ 100 kpps
    Should Match Regexp    ${error}    ^FAIL: 64b unidirectional ≥ 100 kpps: lost [\\d.]+ % at [\\d.]+ kpps offered
    [Teardown]    Widen The Router

A Generator That Cannot Send The Load Proves Nothing
    [Documentation]    Nine tenths of 10GbE's line rate in smallest frames is far beyond what one core sends: the
    ...    verdict is not the router's fault as long as the router loses nothing of what was sent.
    [Tags]    64b    negative
    ${error} =    Run Keyword And Expect Error    INCONCLUSIVE:*    64b 1-flow unidirectional ≥ 90% line rate
    Should Contain    ${error}    the generator sent less than was asked

An Absurd Forwarding Rate Is Never A Pass
    [Documentation]    No kernel on two shared cores brings back 12 million frames a second, and no generator there
    ...    offers them: whatever came back of what little was sent, the testbed could not tell.
    [Tags]    64b    negative
    ${error} =    Run Keyword And Expect Error    INCONCLUSIVE:*    64b 1-flow unidirectional forwards ≥ 12 Mpps
    Should Start With    ${error}    INCONCLUSIVE: 64b 1-flow unidirectional forwards ≥ 12 Mpps:


*** Keywords ***
Skip Unless Router Forwards
    [Documentation]    Skips the test, with the reason, where the router's kernel has no way for *traffic*.
    [Arguments]    ${traffic}
    ${reason} =    Reason Against Traffic    ${BENCH}    ${traffic}
    Skip If    $reason    ${reason}

Link Address Of Router Interface
    [Documentation]    The router's own MAC address on *side* (0 or 1).
    [Arguments]    ${side}
    ${interface} =    Router Interface    ${BENCH}    ${side}
    ${address} =    Run On Router    cat /sys/class/net/${interface}/address
    RETURN    ${address}

Narrow The Router To
    [Documentation]    Shapes what leaves the router's second interface to *rate* (as ``tc`` spells it), with little
    ...    room to wait in.
    [Arguments]    ${rate}
    ${interface} =    Router Interface    ${BENCH}    1
    Run On Router    tc qdisc replace dev ${interface} root tbf rate ${rate} burst 16kb latency 5ms

Widen The Router
    [Documentation]    Takes the shaper away.
    ${interface} =    Router Interface    ${BENCH}    1
    Run On Router    tc qdisc del dev ${interface} root
