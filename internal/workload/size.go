package workload

import (
	"reflect"
	"time"
)

// sizeOf returns the memory that a value references, in bytes, without the value itself.
func sizeOf(v reflect.Value) (size int64) {
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return int64(v.Elem().Type().Size()) + sizeOf(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() { // the location is shared
			return 0
		}
		for _, field := range v.Fields() {
			size += sizeOf(field)
		}
	case reflect.Slice:
		element := v.Type().Elem()
		size = int64(v.Cap()) * int64(element.Size())
		if isPlain(element.Kind()) {
			return size
		}
		for i := range v.Len() {
			size += sizeOf(v.Index(i))
		}
	case reflect.Map:
		size = 48 + 2*int64(v.Len())*int64(v.Type().Key().Size()+v.Type().Elem().Size())
		for each := v.MapRange(); each.Next(); {
			size += sizeOf(each.Key()) + sizeOf(each.Value())
		}
	}
	return size
}

// isPlain reports whether values of a kind contain no references.
func isPlain(k reflect.Kind) bool { return k >= reflect.Bool && k <= reflect.Complex128 }
