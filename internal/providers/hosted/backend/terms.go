package backend

import "github.com/slipwayhq/slipway/internal/policy"

// Terms are facts about the control planes of a backend: what the backend and the operator say, whatever there is already.
// Decisions know backends by them alone.
type Terms struct {
	// Kind is what such a control plane is called: a hosted, a simulated control plane.
	Kind string
	// Components tells that it runs those of Kubernetes: they have authorities, keys, flags and settings of security of their
	// own. One without signs certificates of its API and nothing else.
	Components bool
	// Addons tells that the workload cluster is given what kubeadm join and Pods need.
	Addons bool
	// Versions of Kubernetes that it can be of; with AnyVersion it can be of all.
	Versions   []string
	AnyVersion bool
	// Listens is where it listens, at a port that it chooses: nothing that it needs comes from the infrastructure. Nil: it
	// listens where it is told to, if the host allows that.
	Listens *Listens
	// Started is the control plane once Start has returned, where that is known; nil: an event tells when it answers.
	Started *ControlPlane
	// Denied is why the operator does not allow one to be started; empty: it is allowed.
	Denied string
	// Maximum is how many there may be, by the setting of that name.
	Maximum policy.Maximum
	Setting string
	// Running is the reason of the condition ProcessRunning while one runs.
	Running string
	// Continued says what becomes of one that was started before this program.
	Continued string
	// Emptied says what becomes of one whose data is gone when it is started; empty: it must not be started.
	Emptied string
}

// Listens is the host and the ports from First to Last of control planes that choose where they listen.
type Listens struct {
	Host        string
	First, Last uint16
}
