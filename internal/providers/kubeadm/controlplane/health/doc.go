// Package health says how the components of a control plane are, Machine by Machine and as a whole.
//
// Does: makes of what was read of a workload cluster the conditions of each Machine ([Conditions], a table): whether its Node has the
// label and taint of a control plane, its static Pods run, and its member of etcd agrees with the others. Says which of them are
// gates of a Machine's readiness ([Gates]) and which have to be True before the number of Machines changes ([Unhealthy]). Adds them up to
// the conditions of the control plane ([Components], [EtcdCluster], [Available]).
//
//	Machine       NodeKubeadmLabelsAndTaintsSet, APIServerPodHealthy, ControllerManagerPodHealthy, SchedulerPodHealthy,
//	              EtcdPodHealthy, EtcdMemberHealthy (these two where etcd runs on the Machines)
//
// What cannot be read stays as it was reported last until the connection has been down for longer than the grace period; then it
// is Unknown, with the reason ConnectionDown.
//
// Never: reads anything, or decides what follows.
//
// Read first: [Facts], then [Conditions].
package health
