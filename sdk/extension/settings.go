package extension

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/yaml"
)

// settingTag is the struct tag of fields for [ReadSettings].
const settingTag = "setting"

// ReadSettings parses the settings of a request, which are strings, into a struct. The initial value of a field is its
// default:
//
//	s := struct {
//		Limit  int           `setting:"limit"`
//		Owner  string        `setting:"owner,required"`
//		Window time.Duration `setting:"window"`
//		Zones  []string      `setting:"zones"` // YAML or JSON: [a, b]
//	}{Limit: 20}
//	if err := extension.ReadSettings(in, &s); err != nil { … }
//
// A field may be a string, a bool, a number, a [time.Duration], an [encoding.TextUnmarshaler], a pointer to one of
// these, or any type that YAML can be decoded into. The error lists every required key without a value, every key whose
// value the field does not support, without the value, and every key without a field. All handlers of an extension
// receive the settings of its ExtensionConfig: a handler that does not use all of them needs a field of type
// map[string]string with the tag setting:",rest", which receives the others.
func ReadSettings(in hooksv1.RequestObject, into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() || target.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("settings are read into a pointer to a struct, not into %T", into)
	}
	fields, err := settingFields(target.Elem())
	if err != nil {
		return err
	}
	rest := maps.Clone(in.GetSettings())
	var known []string
	var problems []error
	for _, f := range fields.named {
		known = append(known, f.key)
		text, given := rest[f.key]
		delete(rest, f.key)
		switch {
		case given:
			if err := setText(f.value, text); err != nil {
				problems = append(problems, fmt.Errorf("setting %q: %w", f.key, err))
			}
		case f.required:
			problems = append(problems, fmt.Errorf("setting %q is required", f.key))
		}
	}
	if fields.rest.IsValid() {
		fields.rest.Set(reflect.ValueOf(rest))
		return errors.Join(problems...)
	}
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		problems = append(problems, fmt.Errorf("setting %q is unknown; %s", key, knownSettings(known)))
	}
	return errors.Join(problems...)
}

func knownSettings(keys []string) string {
	if len(keys) == 0 {
		return "there are none"
	}
	return "known are: " + strings.Join(slices.Sorted(slices.Values(keys)), ", ")
}

// settingField is a field of the struct that receives the settings.
type settingField struct {
	key      string
	required bool
	value    reflect.Value
}

type settingStruct struct {
	named []settingField
	rest  reflect.Value // invalid if there is none
}

// settingFields returns the fields with the tag. Errors are programming mistakes.
func settingFields(v reflect.Value) (settingStruct, error) {
	var out settingStruct
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag, ok := f.Tag.Lookup(settingTag)
		if !ok {
			continue
		}
		key, option, _ := strings.Cut(tag, ",")
		switch {
		case !f.IsExported():
			return out, fmt.Errorf("field %s of %s has the tag %q and is not exported", f.Name, v.Type(), settingTag)
		case option == "rest" && key == "" && f.Type == reflect.TypeFor[map[string]string]() && !out.rest.IsValid():
			out.rest = v.Field(i)
		case key != "" && (option == "" || option == "required"):
			out.named = append(out.named, settingField{key, option == "required", v.Field(i)})
		default:
			return out, fmt.Errorf("field %s of %s has the tag %s:%q, which says nothing", f.Name, v.Type(), settingTag, tag)
		}
	}
	return out, nil
}

// setText parses a text into a field. Errors do not include the text, because a setting may be secret.
func setText(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		value := reflect.New(v.Type().Elem())
		if err := setText(value.Elem(), text); err != nil {
			return err
		}
		v.Set(value)
		return nil
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		err := u.UnmarshalText([]byte(text))
		if err != nil && text != "" && (strings.Contains(err.Error(), text) || strings.Contains(err.Error(), strconv.Quote(text))) { // for example time.Time does
			return wantSetting(false, "what "+v.Type().String()+" reads")
		}
		return err
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		v.SetInt(int64(d))
		return wantSetting(err == nil, "a duration such as 1m30s")
	}
	switch {
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return wantSetting(err == nil, "true or false")
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(n)
		return wantSetting(err == nil, "a whole number of "+v.Type().String())
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		v.SetUint(n)
		return wantSetting(err == nil, "a whole number of "+v.Type().String())
	case v.CanFloat():
		n, err := strconv.ParseFloat(text, v.Type().Bits())
		v.SetFloat(n)
		return wantSetting(err == nil, "a number")
	default:
		return wantSetting(yaml.UnmarshalStrict([]byte(text), v.Addr().Interface()) == nil, "YAML or JSON of "+v.Type().String())
	}
	return nil
}

func wantSetting(ok bool, want string) error {
	if ok {
		return nil
	}
	return errors.New("the value is not " + want)
}
