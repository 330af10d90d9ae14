package telemetry

import (
	"fmt"
	"io"
	"net/http"

	"github.com/prometheus/common/expfmt"
)

// textFormat is the one format that is served. Every scraper reads it, and
// serving it needs no more than the encoder: the client library's own handler
// would make each start of the command dearer.
const textFormat = expfmt.Format(`text/plain; version=0.0.4; charset=utf-8; escaping=underscores`)

// WriteText writes all series in the Prometheus text format (0.0.4). A nil
// *Metrics writes nothing.
func (m *Metrics) WriteText(w io.Writer) error {
	if m == nil {
		return nil
	}
	families, err := m.series().registry.Gather()
	if err != nil {
		return fmt.Errorf("gather metrics: %w", err)
	}
	enc := expfmt.NewEncoder(w, textFormat)
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			return fmt.Errorf("write metrics: %w", err)
		}
	}
	return nil
}

// Handler serves WriteText. It answers GET and HEAD; who may ask is the business
// of the server it is put into.
func (m *Metrics) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Use GET.", http.StatusMethodNotAllowed)
			return
		}
		out := &response{ResponseWriter: w}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		// After the first byte only the connection can tell: the scraper sees a body
		// that ends early.
		if err := m.WriteText(out); err != nil && !out.begun {
			http.Error(w, "The metrics could not be gathered.", http.StatusInternalServerError)
		}
	})
}

// response notes whether the body has begun.
type response struct {
	http.ResponseWriter
	begun bool
}

func (r *response) Write(p []byte) (int, error) {
	r.begun = true
	return r.ResponseWriter.Write(p)
}
