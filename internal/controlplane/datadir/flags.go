package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// WriteFlags stores the flags that differ from their defaults, for the next start.
func (h *Handle) WriteFlags(flags map[string]string) error {
	data, err := json.MarshalIndent(flags, "", "  ")
	if err != nil {
		return err
	}
	_, err = WriteFile(h.flags(), append(data, '\n'), 0o600)
	return err
}

// ReadFlags returns the flags of the last start, or none.
func ReadFlags(dir Dir) (map[string]string, error) {
	data, err := os.ReadFile(dir.flags())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unusable(dir, err)
	}
	var flags map[string]string
	if err := json.Unmarshal(data, &flags); err != nil {
		return nil, unusable(dir, fmt.Errorf("%s does not hold the flags of the last start: %w", dir.flags(), err))
	}
	return flags, nil
}
