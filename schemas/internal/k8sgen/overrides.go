package main

// overrides are the types whose JSON form is not the form of their Go type, by import path and name.
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

// externals are the types of packages that are not translated, as the CUE that stands for them.
var externals = map[ref]string{
	{"k8s.io/apimachinery/pkg/types", "UID"}:            "string",
	{"k8s.io/apimachinery/pkg/types", "NodeName"}:       "string",
	{"k8s.io/apimachinery/pkg/runtime", "RawExtension"}: "{...}",
	{"k8s.io/apimachinery/pkg/runtime", "Object"}:       "{...}",
}

// basics are Go's own types in CUE. Bytes are base64 text in a manifest; a CUE value of type bytes is
// rendered as such, so that both can be written.
var basics = map[string]string{
	"string": "string", "bool": "bool",
	"int": "int", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64",
	"uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "byte": "uint8",
	"float32": "number", "float64": "number",
}

// bytesExpr is the CUE of []byte.
const bytesExpr = "bytes | string"

// An override is the CUE of one such type.
type override struct {
	expr, doc string
	opaque    bool // an open struct, which the light form prints like any other struct
}
