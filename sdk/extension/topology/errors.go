package topology

import (
	"errors"
	"fmt"
)

// NotFoundError says that a variable, or a field of it, has no value.
type NotFoundError struct {
	// Path that was read.
	Path string
	// Missing is the part of it that was not found.
	Missing string
}

// Error implements error.
func (e *NotFoundError) Error() string {
	if e.Missing == e.Path {
		return fmt.Sprintf("variable %q has no value", e.Path)
	}
	return fmt.Sprintf("variable %q has no value: there is no %q", e.Path, e.Missing)
}

// InvalidError says that a variable cannot be read as what it was asked for.
type InvalidError struct {
	// Path that was read.
	Path string
	// Cause is why.
	Cause error
}

// Error implements error.
func (e *InvalidError) Error() string { return fmt.Sprintf("variable %q: %v", e.Path, e.Cause) }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Cause }

// TemplateError says which template a rule failed for.
type TemplateError struct {
	// Kind of the template, and where it is used: the holder as kind namespace/name.
	Kind, Holder string
	// Cause is why.
	Cause error
}

// Error implements error.
func (e *TemplateError) Error() string {
	return fmt.Sprintf("%s of %s: %v", e.Kind, e.Holder, e.Cause)
}

// Unwrap returns the cause.
func (e *TemplateError) Unwrap() error { return e.Cause }

// IsNotFound reports whether err says that a variable has no value.
func IsNotFound(err error) bool {
	var e *NotFoundError
	return errors.As(err, &e)
}
