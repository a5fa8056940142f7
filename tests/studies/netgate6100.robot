*** Settings ***
Documentation       Netgate 6100 with pfSense, Ubuntu and VPP: a ramp of each for four profiles and two directions, one
...                 flow at saturation, cycles per packet and energy, beside the figures of the public review of this
...                 box (ipng.ch, November 2021). The study is ``variables/studies/netgate6100.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    netgate6100
Test Tags           study    netgate6100


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure is missing.
    Every Figure Should Be Measured

Figures Agree With The Review
    [Documentation]    Published: 40 ramps, 3 saturations, VPP's counters at 3 loads, energy.
    Published Figures Should Be Met

VPP Fills The Line With Internet Mix
    [Documentation]    Published: 95 to 96 % of line with any number of receive queues.
    Figure Should Be    imix unidirectional    vpp-1q    ≥    95
    Figure Should Be    imix unidirectional    vpp-3q    ≥    95

Each Receive Queue Adds A Third
    [Documentation]    Published: 33, 66 and 96 % of line with 64-byte frames of many flows.
    Figure Should Be    64b unidirectional    vpp-1q    ≤    40
    Figure Should Be    64b unidirectional    vpp-2q    ≥    60
    Figure Should Be    64b unidirectional    vpp-3q    ≥    90

One Flow Each Way Shares A Worker With Three Queues
    [Documentation]    Published: 61 % with one or two queues, 33 % with three.
    Figure Should Be    64b 1-flow bidirectional    vpp-2q    ≥    55
    Figure Should Be    64b 1-flow bidirectional    vpp-3q    ≤    40

Kernels Forward An Eighth Of It
    [Documentation]    Published: 4.19 and 4.32 % against 33.67 % of line, one flow at saturation.
    Difference Should Be    one flow saturated    pfsense    less
    Difference Should Be    one flow saturated    linux    less

A Packet Is Cheap Under Load
    [Documentation]    Published: 1 514 943 cycles at 1 kpps, 1770 at 1 Mpps, 438 at 10 Mpps.
    Figure Should Be    cycles at 1 Mpps    vpp-1q    ≤    2000
    Figure Should Be    cycles at 10 Mpps    vpp-1q    ≤    450
