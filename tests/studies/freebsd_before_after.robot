*** Settings ***
Documentation       FreeBSD 11.1 as released, and with the patches of its locks and all that helped, on five
...                 machines. Published figures are of O. Cochard-Labbé's benchmarks (2018). The study is
...                 ``variables/studies/freebsd_before_after.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    freebsd_before_after
Test Tags           study    freebsd


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure is missing.
    Every Figure Should Be Measured

Figures Agree With The Published Ones
    [Documentation]    Published: five runs of each.
    Published Figures Should Be Met    at_least=0.9    explained=True

The Patches Help
    [Documentation]    Published: twice to five times as much on eight cores and more.
    Difference Should Be    inet4    hp_cxgbe tuned    more
    Difference Should Be    inet4    dell_cxgbe tuned    more
