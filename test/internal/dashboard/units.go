package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// inUnit writes a value as Grafana does for a unit.
func inUnit(v float64, unit string) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case unit == "percentunit":
		return short(v*100) + " %"
	case unit == "s":
		return seconds(v)
	case unit == "ops", unit == "reqps":
		return short(v) + "/s"
	}
	return short(v)
}

// short writes a value with at most three digits that say something.
func short(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return "–"
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// seconds writes a duration.
func seconds(v float64) string {
	switch d := time.Duration(v * float64(time.Second)); {
	case v == 0:
		return "0 s"
	case d < time.Second:
		return short(v*1000) + " ms"
	case d < time.Minute:
		return short(v) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
}

// step returns the distance of the lines of a grid up to a value: 1, 2 or 5 times a power of ten, so that there are at most five.
func step(highest float64) float64 {
	const lines = 5
	power := math.Pow(10, math.Floor(math.Log10(max(highest, 1e-9)/lines)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if factor*power*lines >= highest {
			return factor * power
		}
	}
	return 10 * power
}
