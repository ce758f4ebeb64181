// Package infrastructure contains what the controllers of the infrastructure providers share (packages local and ssh):
// they read the objects around an infrastructure object ([ReadObject], [OwnerName]), wait for bootstrap data and read
// it ([WaitForBootstrapData], [ReadBootstrapData]), report the capacity of nodes that do not exist yet
// ([NodeCapacity]), and skip objects that another system manages ([ManagedReconciler]).
package infrastructure
