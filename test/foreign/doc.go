// Package foreign proves that providers which are not Slipway's work with its core.
//
// Does: runs a small provider of both contracts (package provider) against `slipway manager` with the manager's own rights, over a
// real API server that is management and workload cluster at once, and plays a table of checks: each is a subtest with its number.
// All are played without Docker and without a node that runs.
//
//	rights of the manager                      1 to 6            rightsStory
//	definitions, contract labels               7 to 16           labelStory
//	InfraCluster                               17 to 19, 21, 22  clusterStory
//	                                           24 to 26, 29      clusterStory
//	  endpoint of the control plane            20                planeEndpointStory
//	  slow, hears of it without a timer        23, 28            slowStory
//	  managed by something else                27                externalStory
//	control plane                              30 to 32          clusterStory
//	  initialized by its first Machine         33, 34, 51        nodeFirstStory
//	  kubeconfig of an authority               35                authorityStory
//	Slipway's own providers beside it          36                besideStory
//	Machine                                    37, 38, 44, 48    machineStory
//	                                           52 to 57          machineStory
//	  failure domains                          49, 50, 73        machineStory
//	MachineSet, MachineDeployment              39, 40, 58, 59    deploymentStory
//	MachinePool                                41 to 43          poolStory
//	owner, label and Cluster in time           45, 46            the provider's own checks, in every story
//	watches that map to its objects            47                slowStory, and every story: the provider has no timer
//	machines that admission refuses            60                refusalStory
//	health                                     61                healthStory
//	pause                                      62, 63            pauseStory
//	order of deletion                          64 to 66          deletionStory
//	owners that are lost or old                67, 68            clusterStory, machineStory
//	restart                                    69                restarted
//	idle                                       70                steadyStory
//	contract v1beta1                           71, 74            every story with a family
//	  failures                                 72                failureStory
//	  types                                    75                olderStory
//	what a provider should not report          76 to 82          garbageClusters, …ControlPlanes, …Machines, …Pools
//	connections                                83, 84            connectionStory
//	  kubeconfigs                              85                clusterStory
//
// Never: imports the reference implementation.
//
// Read first: provider.Kinds, then foreign_test.go.
package foreign
