// Pub/Sub for the long tests: Google's in-memory fake (pstest), plus the two Cloud Monitoring gauges that no emulator has, read from the fake's own state
// and served in the shape of `GET /v3/projects/P/timeSeries`, and the few calls of Pub/Sub's REST API that a test needs (rest.go).
//
//	pubsub -grpc 127.0.0.1:8085 -monitoring 127.0.0.1:8086
//
// PUBSUB_EMULATOR_HOST=127.0.0.1:8085 for gRPC clients; REST is on the port of the gauges. -lag hides young points, as the real service does (up to 240 s);
// -ahead is how far the gauges' clock is ahead of ours; -min-ack-deadline allows subscriptions below the real 10 s. State is lost at exit, and a message after
// 10 minutes.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type reactor func(req any) (handled bool, reply any, err error)

func (f reactor) React(req any) (bool, any, error) { return f(req) }

// createSubscription: an omitted ack deadline means 10 s, and a bad one is INVALID_ARGUMENT (the fake refuses both with
// UNKNOWN, which the clients retry for a minute).
func createSubscription(req any, minimum time.Duration) (bool, any, error) {
	s := req.(*pubsubpb.Subscription)
	if s.AckDeadlineSeconds == 0 {
		s.AckDeadlineSeconds = 10
	}
	if given := time.Duration(s.AckDeadlineSeconds) * time.Second; given < minimum || given > 600*time.Second {
		return true, &pubsubpb.Subscription{}, status.Errorf(codes.InvalidArgument, "bad ack_deadline_seconds: %d", s.AckDeadlineSeconds)
	}
	return false, nil, nil
}

type sample struct {
	at           time.Time
	count, ageS  int64
	project, sub string
}

var (
	history   []sample
	historyMu sync.Mutex
	metric    = regexp.MustCompile(`metric\.type\s*=\s*"?pubsub\.googleapis\.com/subscription/(num_undelivered_messages|oldest_unacked_message_age)"?`)
	subID     = regexp.MustCompile(`resource\.labels?\.subscription_id\s*=\s*"?([^"\s]+)"?`)
)

// seek: only to the future (a purge). The fake restores older messages without their content and then crashes.
func seek(req any) (bool, any, error) {
	if t := req.(*pubsubpb.SeekRequest).GetTime(); t != nil && t.AsTime().After(time.Now()) {
		return false, nil, nil
	}
	return true, &pubsubpb.SeekResponse{}, status.Error(codes.Unimplemented, "seek to the past")
}

// field reads an unexported field (hence the pinned version in go.mod); the caller holds the fake's lock.
func field[T any](v reflect.Value, name string) *T {
	return (*T)(unsafe.Pointer(v.FieldByName(name).UnsafeAddr()))
}

// letGo lets a message that was dead-lettered leave its subscription: the fake acknowledges it by message id, which never
// matches the ack id of the last delivery, and so would publish it to the dead-letter topic again and again.
func letGo(s *pstest.GServer) {
	v := reflect.ValueOf(s).Elem()
	mu := field[sync.Mutex](v, "mu")
	mu.Lock()
	defer mu.Unlock()
	for it := v.FieldByName("subs").MapRange(); it.Next(); {
		sub := it.Value().Elem()
		policy := (*field[*pubsubpb.Subscription](sub, "proto")).DeadLetterPolicy
		for m := sub.FieldByName("msgs").MapRange(); policy != nil && m.Next(); {
			msg := m.Value().Elem()
			if field[time.Time](msg, "ackDeadline").IsZero() && int32(**field[*int](msg, "deliveries")) >= policy.MaxDeliveryAttempts {
				(*field[*pubsubpb.ReceivedMessage](msg, "proto")).AckId = m.Key().String()
			}
		}
	}
}

// read takes the unacknowledged messages of each subscription.
func read(s *pstest.GServer, now time.Time) (out []sample) {
	v := reflect.ValueOf(s).Elem()
	mu := field[sync.Mutex](v, "mu")
	mu.Lock()
	defer mu.Unlock()
	for it := v.FieldByName("subs").MapRange(); it.Next(); {
		parts := strings.Split(it.Key().String(), "/") // projects/P/subscriptions/S
		msgs := it.Value().Elem().FieldByName("msgs")
		x := sample{at: now, count: int64(msgs.Len()), project: parts[1], sub: parts[3]}
		for m := msgs.MapRange(); m.Next(); {
			x.ageS = max(x.ageS, int64(now.Sub(*field[time.Time](m.Value().Elem(), "publishTime")).Seconds()))
		}
		out = append(out, x)
	}
	return out
}

func main() {
	grpcAddr := flag.String("grpc", "127.0.0.1:8085", "Pub/Sub address")
	monAddr := flag.String("monitoring", "127.0.0.1:8086", "Monitoring REST address")
	every := flag.Duration("every", time.Second, "sampling period (the real one: 60s)")
	lag := flag.Duration("lag", 0, "age before a point becomes visible (the real one: up to 240s)")
	ahead := flag.Duration("ahead", 0, "how far the clock of the gauges is ahead (behind: negative)")
	minAck := flag.Duration("min-ack-deadline", 10*time.Second, "smallest ack deadline accepted, 1s or more")
	flag.Parse()

	pstest.SetMinAckDeadline(*minAck)
	srv := pstest.NewServerWithAddress(*grpcAddr,
		pstest.ServerReactorOption{FuncName: "CreateSubscription", Reactor: reactor(func(req any) (bool, any, error) { return createSubscription(req, *minAck) })},
		pstest.ServerReactorOption{FuncName: "Seek", Reactor: reactor(seek)})
	go func() {
		for range time.Tick(5 * time.Millisecond) {
			letGo(&srv.GServer)
		}
	}()
	go func() {
		for now := range time.Tick(*every) {
			fresh := read(&srv.GServer, now)
			for i := range fresh {
				fresh[i].at = now.Add(*ahead)
			}
			historyMu.Lock()
			history = append(history, fresh...)
			history = history[max(0, len(history)-100_000):]
			historyMu.Unlock()
		}
	}()

	http.HandleFunc("GET /v3/projects/{project}/timeSeries", func(w http.ResponseWriter, r *http.Request) {
		q, project := r.URL.Query(), r.PathValue("project")
		m := metric.FindStringSubmatch(q.Get("filter"))
		end, err := time.Parse(time.RFC3339Nano, q.Get("interval.endTime"))
		w.Header().Set("content-type", "application/json")
		w.Header().Set("date", time.Now().Add(*ahead).UTC().Format(http.TimeFormat))
		if m == nil || err != nil {
			w.WriteHeader(http.StatusBadRequest)
			json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": 400, "status": "INVALID_ARGUMENT", "message": "filter must name one of the two metrics; interval.endTime is required"}})
			return
		}
		start, err := time.Parse(time.RFC3339Nano, q.Get("interval.startTime"))
		if err != nil {
			start = end
		}
		want, unit := subID.FindStringSubmatch(q.Get("filter")), map[string]string{"num_undelivered_messages": "1", "oldest_unacked_message_age": "s"}[m[1]]
		points, visible := map[string][]any{}, time.Now().Add(*ahead-*lag)
		historyMu.Lock()
		for i := len(history) - 1; i >= 0; i-- { // newest first, as the real API
			x := history[i]
			if x.project != project || want != nil && x.sub != want[1] || x.at.After(visible) || x.at.After(end) || x.at.Before(start) {
				continue
			}
			value := x.count
			if unit == "s" {
				value = x.ageS
			}
			at := x.at.UTC().Format(time.RFC3339Nano) // a gauge: start = end
			points[x.sub] = append(points[x.sub], map[string]any{"interval": map[string]string{"startTime": at, "endTime": at}, "value": map[string]string{"int64Value": strconv.FormatInt(value, 10)}})
		}
		historyMu.Unlock()
		series := []any{}
		for sub, p := range points {
			series = append(series, map[string]any{
				"metric":     map[string]any{"type": "pubsub.googleapis.com/subscription/" + m[1], "labels": map[string]string{}},
				"resource":   map[string]any{"type": "pubsub_subscription", "labels": map[string]string{"project_id": project, "subscription_id": sub}},
				"metricKind": "GAUGE", "valueType": "INT64", "points": p,
			})
		}
		body := map[string]any{} // no data: an empty object, no `timeSeries` key
		if len(series) > 0 {
			body["timeSeries"], body["unit"] = series, unit
		}
		json.NewEncoder(w).Encode(body)
	})
	serveRest(&srv.GServer)
	go func() { log.Fatal(http.ListenAndServe(*monAddr, nil)) }()
	log.Printf("pubsub %s monitoring %s", srv.Addr, *monAddr)

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
}
