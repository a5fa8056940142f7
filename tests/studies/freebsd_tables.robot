*** Settings ***
Documentation       Tables of addresses in ipfw and pf: one entry to ten thousand. Published figures are of O.
...                 Cochard-Labbé's benchmarks (2018). The study is ``variables/studies/freebsd_tables.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    freebsd_tables
Test Tags           study    freebsd


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure is missing.
    Every Figure Should Be Measured

Figures Agree With The Published Ones
    [Documentation]    Published: five runs of each.
    Published Figures Should Be Met    at_least=0.9    explained=True
