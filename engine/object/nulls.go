package object

import "maps"

// DropNulls removes the fields in a value that are null, such as creationTimestamp, which an API server takes for fields that
// are not there.
func DropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, field any) bool { return field == nil })
		for _, field := range v {
			DropNulls(field)
		}
	case []any:
		for _, element := range v {
			DropNulls(element)
		}
	}
}
