*** Settings ***
Documentation       Netgate 6100 with VPP: what a packet costs, in cycles of a worker and in joules of the box.
...                 Source of the figures named in each test: the public review of this box, "Review: Netgate 6100"
...                 (ipng.ch, November 2021), "VPP Efficiency" and the conclusions.
Metadata            SLA    Review: Netgate 6100 (November 2021), https://ipng.ch/s/articles/2021/11/26/netgate-6100.html
Resource            ../resources/acceptance.resource
Suite Setup         Open Testbed For    netgate6100    software=vpp
Suite Teardown      Close Testbed
Test Tags           netgate6100    vpp    efficiency    64b    unidirectional


*** Test Cases ***
A Packet Is Cheap Under Load
    [Documentation]    Published: 437.9 cycles, of which 358 without the input node, in full vectors of 256.
    [Tags]    1-flow
    64b 1-flow unidirectional costs ≤ 450 cycles/packet at 10 Mpps

The Graph Alone Is Cheaper
    [Documentation]    Published: 358 cycles without the input node.
    [Tags]    1-flow
    64b 1-flow unidirectional costs ≤ 370 cycles/packet without input at 10 Mpps

Vectors Are Full Under Load
    [Documentation]    Published: 256 packets per call, the most that VPP takes at once.
    [Tags]    1-flow
    64b 1-flow unidirectional gathers ≥ 250 vectors/call at 10 Mpps

Every Core Takes Its Share
    [Documentation]    Published: 5.01 Mpps of one worker; three of them fill 96 % of the line, 4.76 Mpps each.
    [Tags]    saturation
    64b unidirectional forwards ≥ 4.7 Mpps per core

A Packet Takes Little Energy
    [Documentation]    Published: 1.26 µJ at 19 W and 15.1 Mpps, which is three times what one worker forwards. Into one
    ...    direction of the line fit 14.4 Mpps, so a packet takes 1.32 µJ there.
    64b unidirectional costs ≤ 1.4 µJ/packet
