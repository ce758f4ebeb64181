// Package health computes the health conditions of control plane components, for each Machine and for the control
// plane. From the observed state of a workload cluster it derives the conditions of each Machine ([HealthConditions]):
// whether its Node has the label of a control plane, its static Pods run, and its etcd member is healthy and
// consistent with the others. It defines which conditions are readiness gates of a Machine ([HealthGates]) and which must
// be True before the number of Machines changes ([HealthUnhealthy]). The conditions are aggregated to the conditions of the
// control plane ([Plane.Components], [Plane.EtcdCluster], [Plane.Available]).
//
//	Machine       NodeKubeadmLabelsAndTaintsSet, APIServerPodHealthy, ControllerManagerPodHealthy, SchedulerPodHealthy,
//	              EtcdPodHealthy, EtcdMemberHealthy (the last two only if etcd runs on the Machines)
//
// Conditions whose state cannot be read remain unchanged until the connection has been down for longer than the grace
// period. After that they are Unknown with the reason ConnectionDown. Start reading at [MachineState] and [HealthConditions].
package workload
