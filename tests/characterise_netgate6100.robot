*** Settings ***
Documentation       How much a Netgate 6100 with VPP carries: searches, a ramp, and tests of RFC 2544.
...                 Shows the characterising keywords with shortened trials, which each result declares as deviations.
...                 For a measurement: longer trials and ``-v GOAL:standard`` or ``-v GOAL:rfc2544``.
Resource            ../resources/characterisation.resource
Suite Setup         Open Testbed For    netgate6100    software=vpp    goal=${GOAL}
Suite Teardown      Close Testbed
Test Tags           netgate6100    vpp    characterisation


*** Variables ***
${GOAL}         quick


*** Test Cases ***
Capacity Of One Flow
    [Documentation]    NDR and PDR in one search.
    Search Throughput Of    64b 1-flow unidirectional    deadline=100

Ramp To Saturation
    [Documentation]    Published: the curve "Method 2" of the review named in ``netgate6100.robot``.
    Ramp    64b 1-flow unidirectional    steps=10    step=0.5    warm_up=1    hold=1

Throughput And Latency By RFC 2544
    [Documentation]    Sections 26.1 and 26.2, in trials of 1 s.
    ${throughput} =    RFC 2544 Throughput Of    1-flow unidirectional    64    1518    duration=1    resolution=0.02
    RFC 2544 Latency Of    1-flow unidirectional    ${throughput}    repeats=2    duration=1

Loss Beyond The Capacity
    [Documentation]    Section 26.3.
    Frame Loss Rate Of    64b 1-flow unidirectional    duration=1

More Flows Take More Queues
    [Documentation]    One flow uses one queue and one core.
    Search Throughput Of    64b unidirectional    1-flow    64-flows    axis=flows    relative_width=0.03
