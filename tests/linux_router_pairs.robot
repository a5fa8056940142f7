*** Settings ***
Documentation       A Linux kernel router with four interfaces: traffic through two pairs of ports at once.
...                 Run it as root: ``robot -v TESTBED:netns-pairs tests/linux_router_pairs.robot``.
...                 Each pair has its own networks; rates are low, as in ``linux_router.robot``.
Resource            ../resources/acceptance.resource
Suite Setup         Open Testbed For    linux_router    software=linux    testbed=${TESTBED}    goal=${GOAL}
Suite Teardown      Close Testbed
Test Tags           linux    kernel    pairs


*** Variables ***
${TESTBED}      netns-pairs
# Short trials: longer ones would not show more.
${GOAL}         quick


*** Test Cases ***
The First Pair Alone
    [Documentation]    A sentence without ``on N pairs`` uses the first pair.
    [Tags]    64b    unidirectional
    64b unidirectional ≥ 20 kpps

Both Pairs One Way
    [Documentation]    The threshold is of each pair: 10 000 frames per second into two ports.
    [Tags]    64b    unidirectional
    64b unidirectional on 2 pairs ≥ 10 kpps each way

Both Pairs Both Ways
    [Documentation]    The threshold is the sum of the four directions: 5000 frames per second into each port.
    [Tags]    imix    bidirectional
    imix bidirectional on 2 pairs ≥ 20 kpps in total

IPv6 On Both Pairs
    [Documentation]    Each pair has its own IPv6 addresses.
    [Tags]    78b    ipv6    bidirectional
    78b ipv6 bidirectional on 2 pairs ≥ 5 kpps each way
