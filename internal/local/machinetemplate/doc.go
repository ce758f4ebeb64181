// Package machinetemplate is the controller of LocalMachineTemplates. It reports in the status which capacity a node
// created from a template has (package offer), so that the cluster autoscaler can scale a group up from zero.
package machinetemplate
