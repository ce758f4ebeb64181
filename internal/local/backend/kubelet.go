package backend

// KubeletState is the state of the service that runs the kubelet of a machine. The LocalMachine controller reports it
// in the condition KubeletRunning of a machine whose Node is not ready.
type KubeletState struct {
	// Service is the state of the service; empty if it is unknown.
	Service ServiceState
	// Start is the command that starts the kubelet.
	Start string
}

// ServiceState is the state of a service of a machine. The container backend reads it, and a condition of LocalMachines
// shows it while the Node is not ready.
type ServiceState string

const (
	// ServiceRunning: it runs.
	ServiceRunning ServiceState = "running"
	// ServiceStopped: it does not run and is not restarted.
	ServiceStopped ServiceState = "stopped"
	// ServiceFailing: it exits repeatedly.
	ServiceFailing ServiceState = "failing"
)
