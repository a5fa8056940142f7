*** Settings ***
Documentation       Gowin N305 with a ConnectX-5 and VPP's DPDK driver: forwarding SLA of its two 25GbE ports.
...                 Source of the figures named in each test: the public review of this box (ipng.ch, August 2024).
Metadata            SLA    Review: Gowin N305 (August 2024), https://ipng.ch/
Resource            ../resources/acceptance.resource
Suite Setup         Open Testbed For    gowin_n305    software=cx5_dpdk    testbed=${TESTBED}
Suite Teardown      Close Testbed
Test Tags           gowin_n305    vpp    unidirectional


*** Variables ***
${TESTBED}      simulated


*** Test Cases ***
Large Frames Fill The Line
    [Documentation]    Published: 99.7 %.
    [Tags]    1514b
    1514b unidirectional ≥ 95% line rate

Smallest Frames Of Many Flows
    [Documentation]    Published: 42.8 %.
    [Tags]    64b
    64b unidirectional ≥ 40% line rate

One Flow
    [Documentation]    Published: 17.8 %.
    [Tags]    64b    1-flow
    64b 1-flow unidirectional ≥ 16% line rate

Labelled Frames Spread Like Others
    [Documentation]    Published: 41.5 %.
    [Tags]    64b    mpls
    64b mpls unidirectional ≥ 39% line rate
