*** Settings ***
Documentation       Netgate 6100 with Linux (Ubuntu 20.04, kernel 5.13): forwarding SLA of its two 10GbE SFP+ ports.
...                 Source of the figures named in each test: the public review of this box, "Review: Netgate 6100"
...                 (ipng.ch, November 2021), column Ubuntu.
Metadata            SLA    Review: Netgate 6100 (November 2021), https://ipng.ch/s/articles/2021/11/26/netgate-6100.html
Resource            ../resources/acceptance.resource
Suite Setup         Open Testbed For    netgate6100    software=linux
Suite Teardown      Close Testbed
Test Tags           netgate6100    linux


*** Test Cases ***
Large Frames Fill The Line
    [Documentation]    Published: 97 %, which is the published generator's own limit.
    [Tags]    1514b    unidirectional
    1514b unidirectional ≥ 95% line rate

Internet Mix
    [Documentation]    Published: 75 %.
    [Tags]    imix    unidirectional
    imix unidirectional ≥ 70% line rate

Smallest Frames
    [Documentation]    Published: 17 %.
    [Tags]    64b    unidirectional
    64b unidirectional ≥ 14% line rate

One Flow
    [Documentation]    Published: 4.7 % without loss, 4.32 % at saturation; the threshold is below the lower one.
    [Tags]    64b    1-flow    unidirectional
    64b 1-flow ≥ 4.1% line rate

Large Frames Fill The Line Both Ways
    [Documentation]    Published: 193 % of 200 %.
    [Tags]    1514b    bidirectional
    1514b bidirectional ≥ 190% line rate in total

Internet Mix Both Ways
    [Documentation]    Published: 71 % of 200 %.
    [Tags]    imix    bidirectional
    imix bidirectional ≥ 67% line rate in total

Smallest Frames Both Ways
    [Documentation]    Published: 16 % of 200 %.
    [Tags]    64b    bidirectional
    64b bidirectional ≥ 14% line rate in total

One Flow Each Way
    [Documentation]    Published: 9.0 % of 200 %: two flows, two cores.
    [Tags]    64b    1-flow    bidirectional
    64b 1-flow bidirectional ≥ 8.2% line rate in total

One Core Forwards
    [Documentation]    Published: 642.71 kpps of one 64-byte flow at maximum offered load.
    [Tags]    64b    1-flow    unidirectional    saturation
    64b 1-flow unidirectional forwards ≥ 620 kpps
