*** Settings ***
Documentation       VLANs, network stacks, jails and bridges. Published figures are of O. Cochard-Labbé's benchmarks
...                 (2018). The study is ``variables/studies/freebsd_virtual.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    freebsd_virtual
Test Tags           study    freebsd


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure is missing.
    Every Figure Should Be Measured

Figures Agree With The Published Ones
    [Documentation]    Published: five runs of each.
    Published Figures Should Be Met    at_least=0.9    explained=True

A Bridge Costs More Than Half
    [Documentation]    Published: its lock is taken for each frame.
    Difference Should Be    inet4    hp_cxgbe, in a bridge    less
