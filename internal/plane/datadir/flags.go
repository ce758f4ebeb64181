package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// WriteFlags keeps the flags of a start for the next one: texts by name, those alone that are not at their defaults.
func (h *Handle) WriteFlags(flags map[string]string) error {
	data, err := json.MarshalIndent(flags, "", "  ")
	if err != nil {
		return err
	}
	_, err = WriteFile(h.flags(), append(data, '\n'), 0o600)
	return err
}

// ReadFlags returns what the last start left; nothing, where there was none.
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
