*** Settings ***
Resource    ROOT/resources/acceptance.resource
Suite Setup    Open Testbed For    netgate6100    software=vpp    goal=quick
Suite Teardown    Close Testbed

*** Test Cases ***
Carries More
    64b 1-flow unidirectional ≥ 33% line rate
Forwards Less
    64b 1-flow unidirectional forwards ≥ 6 Mpps
Was Never Sent
    1514b 1-flow unidirectional ≥ 10% line rate
