package datadir

import (
	"errors"
	"os"
)

// HasNode reports whether the last `slipway up` ran a management node, so that the next one does without the flag
// --node.
func (h *Handle) HasNode() (bool, error) {
	_, err := os.Stat(h.node())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// RecordNode records for the next start whether the management cluster has a node. `slipway up` calls it before it
// starts the cluster.
func (h *Handle) RecordNode(yes bool) error {
	if yes {
		_, err := WriteFile(h.node(), []byte("the management cluster has a node: slipway up --node=false removes it\n"), 0o600)
		return err
	}
	if err := os.Remove(h.node()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
