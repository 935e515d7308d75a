package main

// overrides are the types whose JSON form differs from their Go type.
var overrides = map[ref]override{
	{"k8s.io/apimachinery/pkg/api/resource", "Quantity"}: {
		expr: "number | =~#\"^[+-]?[0-9.]+([eEinumkKMGTP]*[-+]?[0-9]*)$\"#",
		doc:  "#Quantity is an amount: a plain number, or one with a suffix, such as 500m, 1.5, 128Mi or 2e3.",
	},
	{"k8s.io/apimachinery/pkg/util/intstr", "IntOrString"}: {
		expr: "int | string",
		doc:  "#IntOrString is a number, or a name or percentage: 80, http, 25%.",
	},
	{"k8s.io/apimachinery/pkg/apis/meta/v1", "Time"}: {
		expr: "string",
		doc:  "#Time is a moment in RFC 3339, to the second.",
	},
	{"k8s.io/apimachinery/pkg/apis/meta/v1", "MicroTime"}: {
		expr: "string",
		doc:  "#MicroTime is a moment in RFC 3339, to the microsecond.",
	},
	{"k8s.io/apimachinery/pkg/apis/meta/v1", "Duration"}: {
		expr: "string",
		doc:  "#Duration is a length of time as Go writes it, such as 1h30m.",
	},
	{"k8s.io/apimachinery/pkg/apis/meta/v1", "FieldsV1"}: {
		expr:   "{...}",
		doc:    "#FieldsV1 is a set of fields, as the API server keeps it in managedFields.",
		opaque: true,
	},
}

// externals are the CUE expressions for types of packages that are not translated.
var externals = map[ref]string{
	{"k8s.io/apimachinery/pkg/types", "UID"}:            "string",
	{"k8s.io/apimachinery/pkg/types", "NodeName"}:       "string",
	{"k8s.io/apimachinery/pkg/runtime", "RawExtension"}: "{...}",
	{"k8s.io/apimachinery/pkg/runtime", "Object"}:       "{...}",
}

// basics are the built-in types of Go in CUE. Bytes are base64 text in a manifest; CUE also renders a value
// of type bytes that way, so authors can write both.
var basics = map[string]string{
	"string": "string", "bool": "bool",
	"int": "int", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64",
	"uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "byte": "uint8",
	"float32": "number", "float64": "number",
}

// bytesExpr is the CUE expression for []byte.
const bytesExpr = "bytes | string"

// An override is the CUE form of such a type.
type override struct {
	expr, doc string
	opaque    bool // an open struct, which the light form prints like any other struct
}
