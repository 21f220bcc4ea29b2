package main

import (
	"context"
	"io"
	"net/http"
	"strings"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const bodyBytesMax = 10 << 20

// serveRest maps the calls of Pub/Sub's REST API that make, fill, empty and remove a subscription to the fake's own methods.
func serveRest(g *pstest.GServer) {
	http.HandleFunc("PUT /v1/projects/{project}/topics/{topic}", func(w http.ResponseWriter, r *http.Request) {
		topic := &pubsubpb.Topic{}
		answer(w, r, topic, func(ctx context.Context) (proto.Message, error) {
			topic.Name = topicName(r, r.PathValue("topic"))
			return g.CreateTopic(ctx, topic)
		})
	})
	http.HandleFunc("PUT /v1/projects/{project}/subscriptions/{subscription}", func(w http.ResponseWriter, r *http.Request) {
		subscription := &pubsubpb.Subscription{}
		answer(w, r, subscription, func(ctx context.Context) (proto.Message, error) {
			subscription.Name = subscriptionName(r, r.PathValue("subscription"))
			return g.CreateSubscription(ctx, subscription)
		})
	})
	http.HandleFunc("DELETE /v1/projects/{project}/subscriptions/{subscription}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, &pubsubpb.DeleteSubscriptionRequest{}, func(ctx context.Context) (proto.Message, error) {
			return g.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: subscriptionName(r, r.PathValue("subscription"))})
		})
	})
	http.HandleFunc("POST /v1/projects/{project}/topics/{call}", func(w http.ResponseWriter, r *http.Request) {
		name, verb, _ := strings.Cut(r.PathValue("call"), ":")
		request := &pubsubpb.PublishRequest{}
		answer(w, r, request, func(ctx context.Context) (proto.Message, error) {
			if verb != "publish" {
				return nil, status.Error(codes.Unimplemented, verb)
			}
			request.Topic = topicName(r, name)
			return g.Publish(ctx, request)
		})
	})
	http.HandleFunc("POST /v1/projects/{project}/subscriptions/{call}", func(w http.ResponseWriter, r *http.Request) {
		name, verb, _ := strings.Cut(r.PathValue("call"), ":")
		pull, acknowledge := &pubsubpb.PullRequest{}, &pubsubpb.AcknowledgeRequest{}
		switch verb {
		case "pull":
			answer(w, r, pull, func(ctx context.Context) (proto.Message, error) {
				pull.Subscription = subscriptionName(r, name)
				return g.Pull(ctx, pull)
			})
		case "acknowledge":
			answer(w, r, acknowledge, func(ctx context.Context) (proto.Message, error) {
				acknowledge.Subscription = subscriptionName(r, name)
				return g.Acknowledge(ctx, acknowledge)
			})
		default:
			http.Error(w, verb, http.StatusNotImplemented)
		}
	})
}

func topicName(r *http.Request, id string) string {
	return "projects/" + r.PathValue("project") + "/topics/" + id
}

func subscriptionName(r *http.Request, id string) string {
	return "projects/" + r.PathValue("project") + "/subscriptions/" + id
}

// answer reads the body into the request, calls, and writes what came of it.
func answer(w http.ResponseWriter, r *http.Request, request proto.Message, call func(context.Context) (proto.Message, error)) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if err == nil && len(body) > 0 {
		err = protojson.Unmarshal(body, request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply, err := call(r.Context())
	if err != nil {
		http.Error(w, err.Error(), httpStatus(status.Code(err)))
		return
	}
	text, _ := protojson.Marshal(reply)
	w.Header().Set("content-type", "application/json")
	w.Write(text)
}

func httpStatus(code codes.Code) int {
	switch code {
	case codes.NotFound:
		return http.StatusNotFound
	case codes.AlreadyExists:
		return http.StatusConflict
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.Unimplemented:
		return http.StatusNotImplemented
	default:
		return http.StatusInternalServerError
	}
}
