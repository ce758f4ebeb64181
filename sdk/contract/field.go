package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Presence says what was found where a contract puts a field, or where a reference points to.
type Presence int

const (
	// NotSet means that there is nothing to look for: the contract has no such field, or the reference is not set.
	NotSet Presence = iota
	// Missing means that the field, or the object, could be there and is not.
	Missing
	// Unreadable means that there is something which is not what the contract says, or which may not be read.
	Unreadable
	// Found means that there is a value, or an object.
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

// Current returns the value as it is now: the zero value where the object does not have the field, and last, the value that was
// read before, where the field cannot be read.
func (f Field[T]) Current(last T) T {
	if f.presence == Unreadable {
		return last
	}
	return f.value
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

// read returns the field at a dotted path; of an object that is not there, every field is missing.
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

// mismatch says in the words of JSON what stands where something else should.
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
