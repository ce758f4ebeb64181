// Package machinetemplate is the controller of LocalMachineTemplates. It reports in the status which capacity a node
// created from a template has (backend.CapacityCalculator), so that the cluster autoscaler can scale a group up from zero. It
// is a package of its own because each controller is one, and controllers do not import each other.
package machinetemplate
