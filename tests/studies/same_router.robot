*** Settings ***
Documentation       The same router three times: whether the testbed finds differences where there are none.
...                 It needs root. The study is ``variables/studies/same_router.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    same_router    testbed=${TESTBED}
Test Tags           study    kernel


*** Variables ***
${TESTBED}      netns


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure is missing.
    Every Figure Should Be Measured

The Same Router Is The Same
    [Documentation]    A difference between equal variants would be a false one: of 20 runs, one may have one.
    Difference Should Be    one flow    two    not proven
    Difference Should Be    one flow    three    not proven
