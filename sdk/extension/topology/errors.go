package topology

import (
	"errors"
	"fmt"
)

// NotFoundError means that a variable, or a field in it, has no value.
type NotFoundError struct {
	// Path is the requested path.
	Path string
	// Missing is the part of the path that was not found.
	Missing string
}

// Error implements error.
func (e *NotFoundError) Error() string {
	if e.Missing == e.Path {
		return fmt.Sprintf("variable %q has no value", e.Path)
	}
	return fmt.Sprintf("variable %q has no value: there is no %q", e.Path, e.Missing)
}

// InvalidError means that a variable does not have the requested type.
type InvalidError struct {
	// Path is the requested path.
	Path string
	// Cause is the underlying error.
	Cause error
}

// Error implements error.
func (e *InvalidError) Error() string { return fmt.Sprintf("variable %q: %v", e.Path, e.Cause) }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Cause }

// TemplateError is the error of a rule for a template.
type TemplateError struct {
	// Kind is the kind of the template, and Holder the object that uses it, as kind namespace/name.
	Kind, Holder string
	// Cause is the underlying error.
	Cause error
}

// Error implements error.
func (e *TemplateError) Error() string {
	return fmt.Sprintf("%s of %s: %v", e.Kind, e.Holder, e.Cause)
}

// Unwrap returns the cause.
func (e *TemplateError) Unwrap() error { return e.Cause }

// IsNotFound reports whether err means that a variable has no value.
func IsNotFound(err error) bool {
	var e *NotFoundError
	return errors.As(err, &e)
}
