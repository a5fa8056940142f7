*** Settings ***
Documentation       Netgate 6100 with pfSense Plus 21.05 (FreeBSD 12.2), packet filter off: forwarding SLA of its
...                 two 10GbE SFP+ ports.
...                 Source of the figures named in each test: the public review of this box, "Review: Netgate 6100"
...                 (ipng.ch, November 2021), column pfSense.
Metadata            SLA    Review: Netgate 6100 (November 2021), https://ipng.ch/s/articles/2021/11/26/netgate-6100.html
Resource            ../resources/acceptance.resource
Suite Setup         Open Testbed For    netgate6100    software=pfsense
Suite Teardown      Close Testbed
Test Tags           netgate6100    pfsense


*** Test Cases ***
Large Frames Fill The Line
    [Documentation]    Published: 97 %, which is the published generator's own limit.
    [Tags]    1514b    unidirectional
    1514b unidirectional ≥ 95% line rate

Internet Mix
    [Documentation]    Published: 61 %.
    [Tags]    imix    unidirectional
    imix unidirectional ≥ 57% line rate

Smallest Frames
    [Documentation]    Published: 15 %.
    [Tags]    64b    unidirectional
    64b unidirectional ≥ 13% line rate

One Flow
    [Documentation]    Published: 4.4 % without loss, 4.19 % at saturation; the threshold is below the lower one.
    [Tags]    64b    1-flow    unidirectional
    64b 1-flow ≥ 4% line rate

Large Frames Fill The Line Both Ways
    [Documentation]    Published: 192 % of 200 %.
    [Tags]    1514b    bidirectional
    1514b bidirectional ≥ 190% line rate in total

Internet Mix Both Ways
    [Documentation]    Published: 63 % of 200 %.
    [Tags]    imix    bidirectional
    imix bidirectional ≥ 57% line rate in total

Smallest Frames Both Ways
    [Documentation]    Published: 15 % of 200 %.
    [Tags]    64b    bidirectional
    64b bidirectional ≥ 13% line rate in total

One Flow Each Way
    [Documentation]    Published: 8.6 % of 200 %: two flows, two cores.
    [Tags]    64b    1-flow    bidirectional
    64b 1-flow bidirectional ≥ 8% line rate in total

One Core Forwards
    [Documentation]    Published: 622.98 kpps of one 64-byte flow at maximum offered load.
    [Tags]    64b    1-flow    unidirectional    saturation
    64b 1-flow unidirectional forwards ≥ 600 kpps
