*** Settings ***
Documentation       A made-up box with VPP: the walk-through of docs/adding-a-platform.md.
Resource            ../resources/acceptance.resource
Suite Setup         Open Testbed For    examplebox    software=vpp    testbed=${TESTBED}
Suite Teardown      Close Testbed
Test Tags           examplebox    vpp


*** Variables ***
${TESTBED}      examplebox


*** Test Cases ***
Internet Mix Fills The Line Both Ways
    [Documentation]    What a customer's line carries.
    [Tags]    imix    bidirectional
    imix bidirectional ≥ 95% line rate each way

One Core Forwards Eight Million Packets
    [Documentation]    One flow uses one core: the worst case.
    [Tags]    64b    1-flow    unidirectional    saturation
    64b 1-flow unidirectional forwards ≥ 8 Mpps

Nothing Is Lost At Half Load
    [Documentation]    Smallest frames at half of line rate are well within the box's capacity.
    [Tags]    64b    bidirectional    loss
    64b bidirectional loses ≤ 0% at 50% line rate each way

A Packet Is Cheap
    [Documentation]    Cycles of a core per packet, at the most that the generator can send.
    [Tags]    64b    1-flow    unidirectional    cost
    64b 1-flow unidirectional costs ≤ 320 cycles/packet

Nobody Waits Long At Half Load
    [Documentation]    99 of 100 frames are forwarded within 100 µs at half of line rate.
    [Tags]    64b    unidirectional    latency
    64b unidirectional latency p99 ≤ 100 µs at 50% line rate
