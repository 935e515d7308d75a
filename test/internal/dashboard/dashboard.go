// Package dashboard draws a dashboard of Grafana as a picture for the documents: each panel in its place, from what its own queries came to.
// It draws the types of panels that config/grafana has, stat, timeseries and table, and no others.
//
//	Read ──> Dashboard ──(somebody runs its queries)──> Draw ──> SVG ──> Panels: what a picture shows
package dashboard

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"strings"
	"time"
)

// A Dashboard is one of Grafana, as far as it is drawn.
type Dashboard struct {
	Title  string  `json:"title"`
	Panels []Panel `json:"panels"`
}

// A Panel shows what some queries come to.
type Panel struct {
	Title string `json:"title"`
	// Type is stat, timeseries or table.
	Type        string `json:"type"`
	GridPos     Place  `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
		Overrides []Override `json:"overrides"`
	} `json:"fieldConfig"`
	Targets []Target `json:"targets"`
}

// An Override gives the series of one name a colour of its own.
type Override struct {
	Matcher struct {
		ID      string `json:"id"`
		Options string `json:"options"`
	} `json:"matcher"`
	Properties []struct {
		ID    string `json:"id"`
		Value struct {
			FixedColor string `json:"fixedColor"`
		} `json:"value"`
	} `json:"properties"`
}

// colour returns the colour that a panel gives to the series of a name, by its name in Grafana, or "".
func (p Panel) colour(name string) string {
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			if o.Matcher.ID == "byName" && o.Matcher.Options == name && property.ID == "color" {
				return property.Value.FixedColor
			}
		}
	}
	return ""
}

// A Place is where a panel is, in a grid of 24 columns.
type Place struct{ X, Y, W, H int }

// A Target is a query, and how its series are called.
type Target struct {
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
	Instant      bool   `json:"instant"`
}

// A Series is one of the series that a query came to.
type Series struct {
	Labels map[string]string
	Points []Point
}

// A Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// interval is what stands for the interval over which Grafana has rates computed, and controllers for the choice of controllers.
const (
	interval    = "$__rate_interval"
	controllers = "$controller"
)

// Read reads a dashboard from its file.
func Read(file string) (Dashboard, error) {
	var out Dashboard
	text, err := os.ReadFile(file)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("%s: %w", file, err)
	}
	return out, nil
}

// Query returns the query of a target for Prometheus: of all controllers, with rates over an interval.
func (t Target) Query(over time.Duration) string {
	return strings.NewReplacer(interval, fmt.Sprintf("%ds", int(over.Seconds())), controllers, ".*").Replace(t.Expr)
}

// A Shown is a panel of a picture: its title, and the queries whose results are drawn in it.
type Shown struct {
	Title   string
	Queries []string
}

// shown returns what a picture of the panel has to show.
func (p Panel) shown() Shown {
	out := Shown{Title: p.Title}
	for _, t := range p.Targets {
		out.Queries = append(out.Queries, t.Expr)
	}
	return out
}

// Shown returns what a picture of the dashboard has to show.
func (d Dashboard) Shown() []Shown {
	var out []Shown
	for _, p := range d.Panels {
		out = append(out, p.shown())
	}
	return out
}

// Panels returns the panels of a picture that Draw has drawn.
func Panels(picture []byte) ([]Shown, error) {
	var document struct {
		Groups []struct {
			Title   string `xml:"title"`
			Queries string `xml:"desc"`
		} `xml:"g"`
	}
	if err := xml.Unmarshal(picture, &document); err != nil {
		return nil, fmt.Errorf("reading the picture: %w", err)
	}
	var out []Shown
	for _, g := range document.Groups {
		out = append(out, Shown{g.Title, strings.Split(g.Queries, "\n")})
	}
	return out, nil
}
