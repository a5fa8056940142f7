*** Settings ***
Documentation       Netgate 6100 with VPP: forwarding SLA of its two 10GbE SFP+ ports, three workers, three receive
...                 queues per port. Per cent are of one direction's L1 line rate.
...                 Source of the figures named in each test: the public review of this box, "Review: Netgate 6100"
...                 (ipng.ch, November 2021), tables "Method 1" and "Method 2", column VPP 3Q.
Metadata            SLA    Review: Netgate 6100 (November 2021), https://ipng.ch/s/articles/2021/11/26/netgate-6100.html
Resource            ../resources/acceptance.resource
Suite Setup         Open Testbed For    netgate6100    software=vpp
Suite Teardown      Close Testbed
Test Tags           netgate6100    vpp


*** Test Cases ***
Large Frames Fill The Line
    [Documentation]    Published: 97 %, which is the published generator's own limit.
    [Tags]    1514b    unidirectional
    1514b unidirectional ≥ 95% line rate

Internet Mix Fills The Line
    [Documentation]    Published: 95 %.
    [Tags]    imix    unidirectional    severity:critical
    imix unidirectional ≥ 95% line rate

Smallest Frames Fill The Line
    [Documentation]    Published: 96 %. The threshold is two points lower: here three workers reach their limit.
    [Tags]    64b    unidirectional
    64b unidirectional ≥ 94% line rate

One Flow Takes A Third Of The Line
    [Documentation]    Published: 33 % without loss; 5.01 Mpps at saturation. One flow uses one queue and one core.
    [Tags]    64b    1-flow    unidirectional
    64b 1-flow unidirectional ≥ 32% line rate

Large Frames Fill The Line Both Ways
    [Documentation]    Published: 194 % of 200 %.
    [Tags]    1514b    bidirectional
    1514b bidirectional ≥ 190% line rate in total

Internet Mix Fills The Line Both Ways
    [Documentation]    Published: 191 % of 200 %.
    [Tags]    imix    bidirectional    severity:critical
    imix bidirectional ≥ 95% line rate each way

Smallest Frames Both Ways
    [Documentation]    Published: 81 % of 200 %.
    [Tags]    64b    bidirectional
    64b bidirectional ≥ 78% line rate in total

One Flow Each Way
    [Documentation]    Published: 33 % of 200 %: with three queues the same worker gets both flows.
    [Tags]    64b    1-flow    bidirectional
    64b 1-flow bidirectional ≥ 29% line rate in total

One Core Forwards Five Million Packets
    [Documentation]    Published: 5.01 Mpps of one 64-byte flow at maximum offered load.
    [Tags]    64b    1-flow    unidirectional    saturation
    64b 1-flow unidirectional forwards ≥ 5 Mpps
