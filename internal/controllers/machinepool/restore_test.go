package machinepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// known is a Machine that had an instance, as a backup keeps it: controlled by the pool, without a status.
func known(name, id string) clusterv1.Machine {
	m := machine(name, "v1.36.0", is(clusterv1.MachineUpToDateCondition, "True"))
	m.Status.Conditions[0].Reason = clusterv1.MachineUpToDateReason
	m.Spec.ProviderID = id
	return m
}

// lost takes what a backup does not keep from a pool with Machines of its own.
func lost(s *snapshot) {
	withMachines(s)
	s.Pool.Status, s.Nodes = clusterv1.MachinePoolStatus{}, observedNodes{Problem: "not connected"}
	s.Infra = infra(`{infrastructureMachineKind: FooMachine}`)
}

func TestRestored(t *testing.T) { // OR-01
	const (
		notProvisioned = "wait: Waiting for FooPool i to report status.initialization.provisioned"
		ids            = " do not exist: restore them; or delete what is left of them, and take the IDs off spec.providerIDList"
	)
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
		record int64
	}{
		"infrastructure machines first": {"their Machines are still to come", settled(lost),
			[]string{notProvisioned, "wait: Machines with the provider IDs x://0, x://1" + ids}, 0},
		"infrastructure provisioned": {"the pool's own list still knows them", settled(lost, func(s *snapshot) { s.Infra = reported() }),
			[]string{"wait: Machines with the provider IDs x://0, x://1" + ids}, 0},
		"list of the infrastructure only": {"not all were provisioned when the backup was made", settled(lost, func(s *snapshot) { s.Pool.Spec.ProviderIDList = nil }),
			[]string{notProvisioned, "wait: Machines with the provider IDs x://0, x://1" + ids}, 0},
		"a Machine is back": {"the other is not", settled(lost, func(s *snapshot) { s.Machines = []clusterv1.Machine{known("m0", "x://0")} }),
			[]string{notProvisioned, "wait: Machines with the provider IDs x://1" + ids}, 0},
		"infrastructure not back": {"nobody can tell how many", settled(lost, func(s *snapshot) { s.Infra, s.InfraMachines = contract.InfraMachinePoolView{}, nil }),
			[]string{"wait: Waiting for FooPool i to be created"}, 0},
		"no status yet": {"it may have Machines", settled(lost, func(s *snapshot) { s.Infra = infra(`{}`) }), []string{notProvisioned}, 0},
		"Machines first": {"their infrastructure machines are still to come", settled(lost, func(s *snapshot) {
			s.InfraMachines, s.Machines = nil, []clusterv1.Machine{known("m0", "x://0"), known("m1", "x://1")}
		}), []string{notProvisioned, "wait: The infrastructure machine of Machine m0 does not exist: restore it, or delete the Machine",
			"wait: The infrastructure machine of Machine m1 does not exist: restore it, or delete the Machine"}, 0},
		"Machine without owner or infrastructure": {"is adopted, whatever is on record", settled(withMachines, func(s *snapshot) {
			s.InfraMachines, s.Machines = nil, []clusterv1.Machine{known("m0", "x://0")}
			s.Machines[0].OwnerReferences = nil
		}), []string{"do: adopt Machine m0: it has the labels of the pool, and no owner"}, 1},
		"Machine adopted": {"and then waits for its infrastructure machine, which was not seen in this life", settled(withMachines, func(s *snapshot) {
			s.InfraMachines, s.Machines = nil, []clusterv1.Machine{known("m0", "x://0")}
		}), []string{"wait: The infrastructure machine of Machine m0 does not exist: restore it, or delete the Machine"}, 1},
		"instance gone": {"it was seen in this life", settled(lost, func(s *snapshot) {
			s.InfraMachines, s.Machines = s.InfraMachines[:1], []clusterv1.Machine{known("m0", "x://0"), known("m1", "x://1")}
			s.Machines[1].Status.Initialization.InfrastructureProvisioned = ptr.To(true)
		}), []string{"do: delete Machine m1: its infrastructure machine is gone", notProvisioned}, 1},
		"somebody else's": {"is none of ours to remove", settled(withMachines, func(s *snapshot) {
			s.InfraMachines, s.Machines = nil, []clusterv1.Machine{machine("m0", "v1.36.0")}
			s.Machines[0].OwnerReferences[0].Kind, s.Machines[0].OwnerReferences[0].UID = "Other", "other"
		}), nil, 1},
		"all back": {"", settled(lost, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{known("m0", "x://0"), known("m1", "x://1")}
		}), []string{notProvisioned}, 1},
		"new": {"a pool without instances is whole as soon as its infrastructure is there", settled(lost, func(s *snapshot) {
			s.Pool.Spec.ProviderIDList, s.Infra, s.InfraMachines = nil, infraOf(contract.V1Beta2, "spec: {}", `{}`), nil
		}), []string{notProvisioned}, 1},
		"new, with instances": {"Machines come before the list, which says after a crash that they are there", settled(lost, func(s *snapshot) {
			s.Pool.Spec.ProviderIDList, s.Infra = nil, reported()
		}), []string{"do: create Machine m0 for its FooMachine", "do: create Machine m1 for its FooMachine"}, 1},
		"new, with Machines": {"", settled(lost, func(s *snapshot) {
			s.Pool.Spec.ProviderIDList, s.Infra = nil, reported()
			s.Machines = []clusterv1.Machine{known("m0", "x://0"), known("m1", "x://1")}
		}), []string{"do: copy the results of bootstrap and infrastructure"}, 1},
		"without Machines": {"they are Nodes only", settled(func(s *snapshot) { s.Pool.Status = clusterv1.MachinePoolStatus{} }), nil, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.s)
			if diff := cmp.Diff(tc.want, texts(p)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := report(tc.s, p, reconciler.Outcome{Done: p.Actions}).Status.(clusterv1.MachinePoolStatus).ObservedGeneration; got != tc.record {
				t.Errorf("%s: on record %d, want %d", tc.reason, got, tc.record)
			}
		})
	}
}

// reported is the infrastructure once all its instances are provisioned.
func reported() contract.InfraMachinePoolView {
	return infra(`{initialization: {provisioned: true}, replicas: 2, infrastructureMachineKind: FooMachine}`)
}

func TestRecordIsLookedFor(t *testing.T) { // OR-01
	s := settled(lost, func(s *snapshot) { s.Pool.Spec.ProviderIDList, s.Infra = nil, reported() })
	if got := decide(s).Recheck; got != recordRecheck {
		t.Errorf("the list is taken over once the record was written, which wakes nobody: again in %s", got)
	}
}
