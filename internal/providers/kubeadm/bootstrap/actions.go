package bootstrap

import "fmt"

// ChooseToken writes a new random token into the spec.
type ChooseToken struct{ Why string }

// String implements loop.Action.
func (a ChooseToken) String() string { return "choose a bootstrap token: " + a.Why }

// CreateToken makes the chosen token known to the workload cluster.
type CreateToken struct{ ID string }

// String implements loop.Action.
func (a CreateToken) String() string {
	return fmt.Sprintf("create bootstrap token %s: the workload cluster has none of this ID", a.ID)
}

// ExtendToken gives a token its full life again.
type ExtendToken struct{ ID string }

// String implements loop.Action.
func (a ExtendToken) String() string {
	return fmt.Sprintf("extend bootstrap token %s: the machine has not joined yet", a.ID)
}

// DeleteToken deletes the Secret of a token.
type DeleteToken struct{ Name string }

// String implements loop.Action.
func (a DeleteToken) String() string {
	return fmt.Sprintf("delete Secret %s: the machine it was made for goes", a.Name)
}

// WriteData writes the bootstrap data.
type WriteData struct{ Name string }

// String implements loop.Action.
func (a WriteData) String() string {
	return fmt.Sprintf("write bootstrap data into Secret %s: all it is made from is there", a.Name)
}

// OwnData makes the KubeadmConfig the owner of its data again.
type OwnData struct{ Name string }

// String implements loop.Action.
func (a OwnData) String() string {
	return fmt.Sprintf("own Secret %s: it lost its owner, so it would stay behind", a.Name)
}

// AskMaterial asks for Snapshot.Material.
type AskMaterial struct{}

// String implements loop.Question.
func (AskMaterial) String() string { return "what bootstrap data is made from" }

// AskToken asks for Snapshot.Token.
type AskToken struct{ ID string }

// String implements loop.Question.
func (q AskToken) String() string { return "the state of bootstrap token " + q.ID }

// AskLeftovers asks for Snapshot.Leftovers.
type AskLeftovers struct{}

// String implements loop.Question.
func (AskLeftovers) String() string { return "which bootstrap tokens are left" }
