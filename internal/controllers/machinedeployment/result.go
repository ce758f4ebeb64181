package machinedeployment

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Set is the MachineSet that the action creates, without what the API server adds.
func (a CreateSet) Set(s Snapshot) *clusterv1.MachineSet { return desired(s, a.part()) }

// Set is what the MachineSet is after the action, as far as the deployment says it.
func (a SyncSet) Set(s Snapshot) *clusterv1.MachineSet { return desired(s, a.part()) }

func (a CreateSet) part() part {
	return part{name: a.Name, replicas: a.Replicas, revision: a.Revision, current: true}
}

func (a SyncSet) part() part {
	return part{name: a.Name, replicas: a.Replicas, revision: a.Revision, current: a.Current}
}
