package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Presence is the result of looking up a field or a reference.
type Presence int

const (
	// NotSet means that there is nothing to look up: the contract has no such field, or the reference is not set.
	NotSet Presence = iota
	// Missing means that the field or the object does not exist.
	Missing
	// Unreadable means that the value violates the contract, or that reading the object is not permitted.
	Unreadable
	// Found means that the value or the object exists.
	Found
)

// Field is a field of a provider object that is defined by the contract.
type Field[T any] struct {
	presence Presence
	value    T
	path     string
	cause    error
}

// Presence reports whether the field has a value, or why not.
func (f Field[T]) Presence() Presence { return f.presence }

// Get returns the value; ok is false if there is none.
func (f Field[T]) Get() (T, bool) { return f.value, f.presence == Found }

// Or returns the value, or fallback if there is none.
func (f Field[T]) Or(fallback T) T {
	if f.presence == Found {
		return f.value
	}
	return fallback
}

// Current returns the current value: the zero value if the object does not have the field, and last, the previous
// value, if the field is unreadable.
func (f Field[T]) Current(last T) T {
	if f.presence == Unreadable {
		return last
	}
	return f.value
}

// Path returns the path of the field, for messages.
func (f Field[T]) Path() string { return f.path }

// Err returns an error if the field is unreadable, and nil otherwise.
func (f Field[T]) Err() error {
	if f.presence != Unreadable {
		return nil
	}
	return fmt.Errorf("field %s: %w", f.path, f.cause)
}

// read returns the field at a dotted path. All fields of an object that does not exist are missing.
func read[T any](o Object, path string) Field[T] {
	f := Field[T]{presence: Missing, path: path}
	raw, ok := dig(o.content(), split(path))
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
		f.presence, f.value, f.cause = Unreadable, zero, mismatch(err)
		return f
	}
	f.presence = Found
	return f
}

// mismatch describes a type error in JSON terms.
func mismatch(err error) error {
	var is *json.UnmarshalTypeError
	if !errors.As(err, &is) {
		return err
	}
	want := "number"
	switch is.Type.Kind() {
	case reflect.Int32:
		want = "32-bit integer"
	case reflect.Int, reflect.Int64:
		want = "integer"
	case reflect.Bool:
		want = "bool"
	case reflect.String:
		want = "string"
	case reflect.Slice:
		want = "array"
	case reflect.Map, reflect.Struct:
		want = "object"
	}
	if is.Field != "" {
		return fmt.Errorf("%s: want %s, have %s", is.Field, want, is.Value)
	}
	return fmt.Errorf("want %s, have %s", want, is.Value)
}

// checked returns the field, marked as unreadable if the core objects do not support its value.
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

// either returns the first field that is found or unreadable.
func either[T any](fields ...Field[T]) Field[T] {
	for _, f := range fields {
		if f.presence == Found || f.presence == Unreadable {
			return f
		}
	}
	return fields[0]
}

func split(path string) []string { return strings.Split(path, ".") }

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
