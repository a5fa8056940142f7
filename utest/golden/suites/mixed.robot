*** Settings ***
Resource    ROOT/resources/acceptance.resource
Suite Setup    Open Testbed For    netgate6100    software=vpp    goal=quick
Suite Teardown    Close Testbed

*** Variables ***
${LOST}    ${0}

*** Test Cases ***
Carries
    IF    ${LOST}    Cause Fault    one-way loss    share=${LOST}    port=0    start=0
    64b 1-flow unidirectional ≥ 4.7 Mpps
Carries Less
    64b 1-flow unidirectional ≥ 6 Mpps
Carries Nearly
    64b 1-flow bidirectional ≥ 34% line rate in total
Forwards
    imix bidirectional forwards ≥ 90% line rate each way
Forwards Less
    64b 1-flow unidirectional forwards ≥ 6 Mpps
Loses Half
    64b 1-flow unidirectional loses ≤ 55 % at 10 Mpps
Loses Too Much
    64b 1-flow unidirectional loses ≤ 1 % at 6 Mpps
In Time
    64b unidirectional latency p99 ≤ 1 ms at 1 Mpps
Late
    64b unidirectional latency p99 ≤ 1 µs at 1 Mpps
Varies
    64b unidirectional pdv p99 ≤ 0.1 µs at 1 Mpps
A Packet Takes Energy
    64b unidirectional costs ≤ 1 µJ/packet
A Cable Loses
    Cause Fault    one-way loss    share=0.1    port=1    of=cable
    64b 1-flow bidirectional ≥ 0.1 Mpps each way
An Answer Is Lost
    Cause Fault    lost reply    start=2    at=0.3
    64b 1-flow unidirectional ≥ 1 Mpps
Links Flap
    Cause Fault    link flap    at=0.5    for=0.2    every=True
    64b 1-flow unidirectional ≥ 1 Mpps
