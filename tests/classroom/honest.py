"""A class that works alone: six answers to assignment 2, each writer's in habits of their own, for what must not be
called a copy."""

ASSIGNMENT = "assignment2"
WRITERS = {
    "plain_loops": '''
def top_k_attention(query, keys, values, k):
    n = keys.shape[0]
    scores = np.zeros(n)
    for i in range(n):
        scores[i] = np.dot(keys[i], query)
    order = list(range(n))
    order.sort(key=lambda i: scores[i], reverse=True)
    chosen = order[:k]
    biggest = scores[chosen[0]]
    weights = np.zeros(n)
    total = 0
    for i in chosen:
        weights[i] = np.exp(scores[i] - biggest)
        total += weights[i]
    weights = weights / total
    output = np.zeros(values.shape[1])
    for i in chosen:
        output = output + weights[i] * values[i]
    return output, weights
def general_scores(Q, K, W):
    result = np.zeros((Q.shape[0], K.shape[0]))
    for i in range(Q.shape[0]):
        for j in range(K.shape[0]):
            result[i, j] = Q[i] @ W @ K[j]
    return result
def attention_head(X, W_q, W_k, W_v):
    T = len(X)
    d_k = W_k.shape[1]
    Q = np.dot(X, W_q)
    K = np.dot(X, W_k)
    V = np.dot(X, W_v)
    weights = np.zeros((T, T))
    for t in range(T):
        weights[t] = softmax(np.array([Q[t] @ K[s] / d_k ** 0.5 for s in range(T)]))
    return np.dot(weights, V), weights
def unit_divisor(d_k, sigma_q, sigma_k):
    variance = 0
    for _ in range(d_k):
        variance += sigma_q ** 2 * sigma_k ** 2
    return variance ** 0.5
''',
    "einsum": '''
def top_k_attention(query, keys, values, k):
    s = np.einsum("d,nd->n", query, keys)
    threshold = np.sort(s)[-k]
    w = softmax(np.where(s >= threshold, s, -np.inf))
    return np.einsum("n,nm->m", w, values), w
def general_scores(Q, K, W):
    return np.einsum("qd,de,ke->qk", Q, W, K)
def attention_head(X, W_q, W_k, W_v):
    q, k, v = (np.einsum("td,df->tf", X, W) for W in (W_q, W_k, W_v))
    w = softmax(np.einsum("qe,ke->qk", q, k) / np.sqrt(q.shape[-1]))
    return np.einsum("qk,kv->qv", w, v), w
def unit_divisor(d_k, sigma_q, sigma_k):
    return np.sqrt(d_k * sigma_q ** 2 * sigma_k ** 2)
''',
    "partition": '''
def top_k_attention(query, keys, values, k):
    scores = keys.dot(query)
    idx = np.argpartition(scores, -k)[-k:]
    weights = np.zeros_like(scores)
    weights[idx] = softmax(scores[idx])
    return weights.dot(values), weights
def general_scores(Q, K, W):
    transformed = K @ W.T
    return Q @ transformed.T
def attention_head(X, W_q, W_k, W_v):
    queries = X @ W_q
    keys = X @ W_k
    values = X @ W_v
    scores = queries @ keys.T
    scaled = scores / np.sqrt(keys.shape[-1])
    weights = softmax(scaled)
    output = weights @ values
    return output, weights
def unit_divisor(d_k, sigma_q, sigma_k):
    return sigma_q * sigma_k * d_k ** 0.5
''',
    "comprehensions": '''
def top_k_attention(query, keys, values, k):
    scores = [float(key @ query) for key in keys]
    best = sorted(range(len(keys)), key=scores.__getitem__)[-k:]
    share = dict(zip(best, softmax(np.array([scores[b] for b in best]))))
    weights = np.array([share.get(i, 0.0) for i in range(len(keys))])
    return sum(weights[b] * values[b] for b in best), weights
def general_scores(Q, K, W):
    return np.array([[q @ W @ k for k in K] for q in Q])
def attention_head(X, W_q, W_k, W_v):
    root = np.sqrt(len(W_k[0]))
    weights = np.array([softmax([(x @ W_q) @ (y @ W_k) / root for y in X]) for x in X])
    return np.array([sum(w * (y @ W_v) for w, y in zip(row, X)) for row in weights]), weights
def unit_divisor(d_k, sigma_q, sigma_k):
    return np.prod([np.sqrt(d_k), sigma_q, sigma_k])
''',
    "terse": '''
def top_k_attention(query, keys, values, k):
    a = keys @ query
    a[np.argsort(a)[:-k]] = -np.inf if k < len(a) else a[:0]
    return (w := softmax(a)) @ values, w
def general_scores(Q, K, W): return Q @ (W @ K.T)
def attention_head(X, W_q, W_k, W_v):
    return (w := softmax(X @ W_q @ W_k.T @ X.T / W_k.shape[1] ** .5)) @ X @ W_v, w
def unit_divisor(d_k, sigma_q, sigma_k): return (d_k * (sigma_q * sigma_k) ** 2) ** .5
''',
    "torch": '''
import torch
def top_k_attention(query, keys, values, k):
    q, K, V = (torch.as_tensor(a) for a in (query, keys, values))
    best = torch.topk(K @ q, k)
    weights = torch.zeros(len(K), dtype=K.dtype).scatter(0, best.indices, torch.softmax(best.values, 0))
    return (weights @ V).numpy(), weights.numpy()
def general_scores(Q, K, W):
    return (torch.as_tensor(Q) @ torch.as_tensor(W) @ torch.as_tensor(K).mT).numpy()
def attention_head(X, W_q, W_k, W_v):
    X, W_q, W_k, W_v = map(torch.as_tensor, (X, W_q, W_k, W_v))
    scores = torch.matmul(X @ W_q, (X @ W_k).transpose(0, 1)).div(W_q.size(1) ** 0.5)
    weights = scores.softmax(dim=1)
    return torch.mm(weights, X @ W_v).numpy(), weights.numpy()
def unit_divisor(d_k, sigma_q, sigma_k):
    return torch.tensor(d_k).sqrt().item() * sigma_q * sigma_k
''',
}
