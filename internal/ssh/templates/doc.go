// Package templates is the controller of SSHMachineTemplates. It reports in the status the capacity of the SSHHosts that match
// a template, so that the cluster autoscaler can scale a group up from zero. It is a package of its own because each
// controller is one, and controllers do not import each other.
package templates
