*** Settings ***
Documentation       Firewalls of FreeBSD 11.1, stateless and stateful, IPv4 and IPv6. Published figures are of O.
...                 Cochard-Labbé's benchmarks (2018). The study is ``variables/studies/freebsd_firewalls.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    freebsd_firewalls
Test Tags           study    freebsd


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure is missing.
    Every Figure Should Be Measured

Figures Agree With The Published Ones
    [Documentation]    Published: five runs of each.
    Published Figures Should Be Met    at_least=0.9    explained=True

A Firewall Costs Something
    [Documentation]    Published: ipfw without states least, ipf with states most.
    Difference Should Be    inet4    hp_cxgbe, ipfw stateless    less
    Difference Should Be    inet4    hp_cxgbe, ipf stateful    less
