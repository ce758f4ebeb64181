package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// unreadable returns an error, for the user whose write is rejected, with the field and a remedy for a value of the
// wrong type, such as a version without quotes in YAML. [reviewer.read] calls it.
func unreadable(what string, err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) || wrong.Field == "" {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	advice := ""
	if wrong.Type.Kind() == reflect.String && (wrong.Value == "number" || wrong.Value == "bool") {
		advice = "; write it in quotes"
	}
	return fmt.Errorf("%s has %s where %s belongs%s", wrong.Field, jsonKind(wrong.Value), goKind(wrong.Type), advice)
}

// jsonKind translates the value kinds of encoding/json for users.
func jsonKind(value string) string {
	switch value {
	case "bool":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	return "a " + value
}

func goKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "an object"
	}
	return "a number"
}
