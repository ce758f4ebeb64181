// Package admission decides what objects become by default, and which are refused.
//
// Does: Default and Validate, pure functions over the old and the new form of an object in its stored version. One
// file per kind; rules that a CRD's schema or CEL can express are there and not here.
//
// Owns: the defaults and the messages of these kinds: Cluster (CL-30, CL-31, CL-32), Machine (MA-17, MA-27),
// MachineDeployment (DP-17), MachineSet (MS-22, MS-23), MachinePool (MP-15), MachineDrainRule (MD-09),
// MachineHealthCheck (HC-05, HC-12), ClusterResourceSet and its binding
// (RS-01, RS-04, RS-06), KubeadmConfig and its template (KB-26, KB-28), ExtensionConfig (RT-01, RT-02),
// IPAddress and IPAddressClaim (IA-09), and the templates of our own kinds (IM-09, IP2-10).
//
// Never: I/O. Package webhook serves these functions; nothing here knows HTTP or the API server.
//
// Read first: admission.go.
package admission
