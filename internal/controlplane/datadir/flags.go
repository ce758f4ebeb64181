package datadir

// WriteFlags stores the flags of `slipway up` that differ from their defaults, for the next start. `slipway up` calls
// it.
func (h *Handle) WriteFlags(flags map[string]string) error {
	return WriteJSON(h.flags(), flags)
}

// ReadFlags returns the flags of the last start, or none. `slipway up` uses them for flags that its command line does
// not set.
func ReadFlags(dir Dir) (map[string]string, error) {
	var flags map[string]string
	if _, err := ReadJSON(dir.flags(), &flags); err != nil {
		return nil, unusable(dir, err)
	}
	return flags, nil
}
