package contract

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Presence says what was found where a contract puts a field.
type Presence int

const (
	// NotSet means that the contract version of the object has no such field.
	NotSet Presence = iota
	// Missing means that the object could have the field and does not.
	Missing
	// Unreadable means that what is there has another type than the contract says.
	Unreadable
	// Found means that Get returns the value.
	Found
)

// Field is one field of a provider object, as the contract sees it.
type Field[T any] struct {
	presence Presence
	value    T
	path     string
	cause    error
}

// Presence tells whether there is a value and, if not, why.
func (f Field[T]) Presence() Presence { return f.presence }

// Get returns the value and whether there is one.
func (f Field[T]) Get() (T, bool) { return f.value, f.presence == Found }

// Or returns the value, or fallback where there is none.
func (f Field[T]) Or(fallback T) T {
	if f.presence == Found {
		return f.value
	}
	return fallback
}

// Path returns where the field was looked for, for messages.
func (f Field[T]) Path() string { return f.path }

// Err returns an error for an unreadable field and nil otherwise.
func (f Field[T]) Err() error {
	if f.presence != Unreadable {
		return nil
	}
	return fmt.Errorf("field %s: %w", f.path, f.cause)
}

// read returns the field at a dotted path.
func read[T any](object map[string]any, path string) Field[T] {
	f := Field[T]{presence: Missing, path: path}
	raw, ok := dig(object, strings.Split(path, "."))
	if !ok || raw == nil {
		return f
	}
	if value, ok := raw.(T); ok {
		f.presence, f.value = Found, value
		return f
	}
	data, err := json.Marshal(raw)
	if err == nil {
		err = json.Unmarshal(data, &f.value)
	}
	if err != nil {
		var zero T
		f.presence, f.value, f.cause = Unreadable, zero, fmt.Errorf("want %T, have %T", zero, raw)
		return f
	}
	f.presence = Found
	return f
}

// checked returns the field, unreadable where its value is one that the core's objects cannot take over.
func (f Field[T]) checked(problem func(T) error) Field[T] {
	if f.presence != Found {
		return f
	}
	if err := problem(f.value); err != nil {
		var zero T
		f.presence, f.value, f.cause = Unreadable, zero, err
	}
	return f
}

// either returns the first of the fields that has something to say: found or unreadable.
func either[T any](fields ...Field[T]) Field[T] {
	for _, f := range fields {
		if f.presence == Found || f.presence == Unreadable {
			return f
		}
	}
	return fields[0]
}

func dig(object map[string]any, path []string) (any, bool) {
	var at any = object
	for _, name := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = m[name]; !ok {
			return nil, false
		}
	}
	return at, true
}
