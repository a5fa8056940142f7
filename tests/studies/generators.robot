*** Settings ***
Documentation       What each generator sends by itself, by frame size, without a router. It needs root; generators
...                 that are not here are no failures. The study is ``variables/studies/generators.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    generators    testbed=${TESTBED}
Test Tags           study    generators


*** Variables ***
${TESTBED}      netns


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure of a generator that is here is missing.
    Every Figure Should Be Measured

A Generator Sends Something
    [Documentation]    The sender of the testbed itself is always here.
    Figure Should Be    64b    this testbed    ≥    1
