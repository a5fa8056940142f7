*** Settings ***
Documentation       A Linux kernel router: real frames through a real kernel, between network namespaces of one machine.
...                 Run it as root: ``robot -v TESTBED:netns tests/linux_router.robot``.
...                 The rates are low on purpose: generator and router share two cores, often of a virtual machine.
...                 The suite shows that the counts are right and that the kernel forwards correctly, not its speed.
Resource            ../resources/acceptance.resource
Suite Setup         Open Testbed For    linux_router    software=linux    testbed=${TESTBED}    goal=${GOAL}
Suite Teardown      Close Testbed
Test Tags           linux    kernel


*** Variables ***
${TESTBED}      netns
# Short trials: longer ones would not show more.
${GOAL}         quick
# What generator and router sustain together on two cores of a small virtual machine, without loss.
${MODEST}       20 kpps


*** Test Cases ***
Small Frames Pass Without Loss
    [Documentation]    RFC 1812 requires no rate; an idle kernel loses nothing at a few per mille of line rate.
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
    [Documentation]    Every frame has the same addresses; one flow is unidirectional by default.
    [Tags]    64b    1-flow    unidirectional
    1-flow 64b ≥ ${MODEST}

Nothing Is Lost At A Low Rate
    [Documentation]    Loss at a given load: none of 5000 frames per second.
    [Tags]    64b    unidirectional    loss
    64b unidirectional loses ≤ 0% at 5 kpps

Longest Frames Pass Without Loss
    [Documentation]    Jumbo frames, the longest of the profiles: 370 Mbit/s in each direction.
    [Tags]    9216b    jumbo    bidirectional
    9216b bidirectional ≥ 5 kpps each way

IPv6 Passes Both Ways Without Loss
    [Documentation]    The same flows with addresses of RFC 5180, without frames of the kernel's neighbour discovery.
    [Tags]    78b    ipv6    bidirectional
    78b ipv6 bidirectional ≥ 10 kpps each way

Tagged Frames Pass Without Loss
    [Documentation]    VLAN 100 on both sides; skipped if the kernel has no module for it.
    [Tags]    64b    vlan    unidirectional
    [Setup]    Skip Unless Router Forwards    64b vlan
    64b vlan unidirectional ≥ ${MODEST}

Twice Tagged Frames Pass Without Loss
    [Documentation]    IEEE 802.1ad, VLAN 100 within VLAN 200; skipped if the kernel has no module for it.
    [Tags]    64b    qinq    unidirectional
    [Setup]    Skip Unless Router Forwards    64b qinq
    64b qinq unidirectional ≥ ${MODEST}

Labelled Frames Pass Without Loss
    [Documentation]    MPLS, each direction with its own label; skipped if the kernel has no module for it.
    [Tags]    64b    mpls    bidirectional
    [Setup]    Skip Unless Router Forwards    64b mpls
    64b mpls bidirectional ≥ 10 kpps each way

A Rate Beyond The Router Fails
    [Documentation]    The router's second interface is limited to 10 Mbit/s (about 20 kpps of 64-byte frames), and the
    ...    load is five times as high: it loses frames, and the verdict is FAIL.
    [Tags]    64b    negative
    [Setup]    Narrow The Router To    10mbit
    64b unidirectional ≥ 100 kpps    expect=FAIL
    [Teardown]    Widen The Router

A Generator That Cannot Send The Load Proves Nothing
    [Documentation]    One core cannot send smallest frames at 90 % of 10GbE's line rate: the verdict is not FAIL if the
    ...    router loses none of the frames that were sent.
    [Tags]    64b    negative
    64b 1-flow unidirectional ≥ 90% line rate    expect=INCONCLUSIVE

An Absurd Forwarding Rate Is Never A Pass
    [Documentation]    On two shared cores no generator offers 12 million frames per second, and no kernel forwards
    ...    them: the testbed cannot prove anything about the router at that rate.
    [Tags]    64b    negative
    64b 1-flow unidirectional forwards ≥ 12 Mpps    expect=INCONCLUSIVE


*** Keywords ***
Skip Unless Router Forwards
    [Documentation]    Skips the test, with the reason, if *traffic* is not sent because the router cannot forward it.
    [Arguments]    ${traffic}
    ${status}    ${reason} =    Run Keyword And Ignore Error    Send Traffic    ${traffic} unidirectional    1 kpps
    Skip If    $status == 'FAIL' and 'was not sent: ' in $reason    ${reason}

Narrow The Router To
    [Documentation]    Limits the output of the router's second interface to *rate* (in ``tc``'s spelling), with a short
    ...    queue.
    [Arguments]    ${rate}
    Run On Router    tc qdisc replace dev ${ROUTER_INTERFACES}[1] root tbf rate ${rate} burst 16kb latency 5ms

Widen The Router
    [Documentation]    Removes the limit.
    Run On Router    tc qdisc del dev ${ROUTER_INTERFACES}[1] root
